package machine

import (
	"encoding/json"
	"testing"

	"github.com/atoll-run/atoll/internal/wire"
)

// FuzzDatagram: what a guest sends is a datagram from the sandbox's loopback interface,
// of the grant, within the limit, or refused.
func FuzzDatagram(f *testing.F) {
	f.Add([]byte(`{"from":"127.0.0.1:40000","grant":"g","exec":"e","data":"aGVsbG8="}`), "g")
	f.Add([]byte(`{"from":"[::1]:40000","data":null}`), "")
	f.Add([]byte(`{"from":"127.0.0.1%eth0:1","grant":"../g","data":"!"}`), "g")
	f.Add([]byte(`{"from":"10.0.0.1:53"}`), "")
	f.Fuzz(func(t *testing.T, payload []byte, grant string) {
		d, ok := parseDatagram(payload, grant)
		if !ok {
			return
		}
		if !d.From.Addr().IsLoopback() || len(d.Data) > wire.MaxDatagram || grant != "" && d.Grant != grant || !validOrEmpty(d.Grant) || !validOrEmpty(d.Exec) {
			t.Fatalf("%+v", d)
		}
	})
}

// FuzzCaller: what a guest says of a caller is on its loopback interface and of the port
// that was connected to, or refused.
func FuzzCaller(f *testing.F) {
	f.Add([]byte(`{"port":443,"peer":"127.0.0.1:40000","grant":"g","exec":"e","to":"127.77.1.2:443"}`))
	f.Add([]byte(`{"port":443,"peer":"127.0.0.1:40000","to":"127.77.1.2:80"}`))
	f.Add([]byte(`{"port":-1,"peer":"[::ffff:127.0.0.1]:1","to":"[::ffff:127.77.1.2]:443"}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		var reported wire.Caller
		if json.Unmarshal(payload, &reported) != nil {
			return
		}
		c, ok := callerFrom(&reported)
		if !ok {
			return
		}
		if !c.Addr.Addr().IsLoopback() || !validOrEmpty(c.Grant) || !validOrEmpty(c.Exec) || c.To.IsValid() && (!c.To.Addr().IsLoopback() || int(c.To.Port()) != c.Port) {
			t.Fatalf("%+v", c)
		}
	})
}
