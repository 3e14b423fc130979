package docker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
)

func TestParseGPUs(t *testing.T) {
	gpu := [][]string{{"gpu"}}
	none := map[string]string{}
	cases := []struct {
		text string
		want container.DeviceRequest
	}{
		{"all", container.DeviceRequest{Count: -1, Capabilities: gpu, Options: none}},
		{"2", container.DeviceRequest{Count: 2, Capabilities: gpu, Options: none}},
		{"count=3", container.DeviceRequest{Count: 3, Capabilities: gpu, Options: none}},
		{"device=GPU-1", container.DeviceRequest{DeviceIDs: []string{"GPU-1"}, Capabilities: gpu, Options: none}},
		{`"device=0,2",driver=nvidia`, container.DeviceRequest{DeviceIDs: []string{"0", "2"}, Driver: "nvidia", Capabilities: gpu, Options: none}},
		{`all,"capabilities=compute,utility"`, container.DeviceRequest{Count: -1, Capabilities: [][]string{{"compute", "utility", "gpu"}}, Options: none}},
		{"driver=nvidia", container.DeviceRequest{Count: 1, Driver: "nvidia", Capabilities: gpu, Options: none}},
		{"1,options=a=b", container.DeviceRequest{Count: 1, Capabilities: gpu, Options: map[string]string{"a": "b"}}},
	}
	for _, c := range cases {
		t.Run(c.text, func(t *testing.T) {
			got, err := parseGPUs(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, bad := range []string{"", "some", "0", "-1", "2,3", "all,count=1", "device=0,count=1", "speed=fast", `"unclosed`} {
		if got, err := parseGPUs(bad); err == nil {
			t.Errorf("%q is taken for %+v", bad, got)
		}
	}
}
