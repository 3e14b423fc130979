package run_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/run"
)

// A name in a configuration can be made to stand for any address by its DNS server:
// only addresses of the public internet are connected to.
func TestExternalNamesLeadOutside(t *testing.T) {
	for address, public := range map[string]bool{
		"8.8.8.8:443": true, "172.32.0.1:80": true, "[2606:4700::1111]:443": true, "[::ffff:8.8.8.8]:443": true,
		"0.0.0.0:80": false, "10.0.0.1:80": false, "127.0.0.1:80": false, "172.16.0.1:80": false, "192.168.1.1:80": false,
		"100.64.0.1:80":           false, // carriers' own
		"169.254.169.254:80":      false, // the metadata of clouds
		"100.100.100.200:80":      false,
		"168.63.129.16:80":        false,
		"192.0.0.192:80":          false,
		"198.18.0.1:80":           false, // laboratories
		"203.0.113.9:80":          false, // documents
		"224.0.0.1:80":            false,
		"255.255.255.255:80":      false,
		"[::]:80":                 false,
		"[::1]:80":                false,
		"[::ffff:127.0.0.1]:80":   false, // IPv4 in the clothes of IPv6
		"[64:ff9b::a9fe:a9fe]:80": false,
		"[2002:7f00:1::]:80":      false,
		"[2001::1]:80":            false,
		"[fd00:ec2::254]:80":      false,
		"[fe80::1%eth0]:80":       false,
		"[ff02::1]:80":            false,
		"nobody:80":               false,
	} {
		if err := run.Public(address); (err == nil) != public {
			t.Errorf("%s: %v", address, err)
		}
	}
}
