package config_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/config"
)

func TestSize(t *testing.T) {
	tests := []struct {
		text string
		want int64 // -2: refused
	}{
		{`"512m"`, 512 << 20}, {`"1g"`, 1 << 30}, {`"1G"`, 1 << 30}, {`"2gb"`, 2 << 30}, {`"2GiB"`, 2 << 30},
		{`"1.5k"`, 1536}, {`"1t"`, 1 << 40}, {`"100"`, 100}, {`"100b"`, 100}, {`" 1 m "`, 1 << 20}, {`100`, 100},
		{`"-1"`, config.Unlimited}, {`-1`, config.Unlimited}, {`".5k"`, 512}, {`"0"`, 0},
		{`""`, -2}, {`"m"`, -2}, {`"1x"`, -2}, {`"1mm"`, -2}, {`"1bb"`, -2}, {`"1ib"`, -2}, {`"-1m"`, -2}, {`"1e3"`, -2},
		{`"0x10"`, -2}, {`"inf"`, -2}, {`"nan"`, -2}, {`"99999999t"`, -2}, {`"1_0"`, -2}, {`"-2"`, -2}, {`"1mi"`, -2},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			var s config.Size
			if err := json.Unmarshal([]byte(tt.text), &s); err != nil {
				t.Fatal(err)
			}
			got, err := s.Bytes()
			if err != nil {
				got = -2
			}
			if got != tt.want {
				t.Errorf("got %d (%v), want %d", got, err, tt.want)
			}
			if back, err := json.Marshal(s); err != nil || string(back) != tt.text {
				t.Errorf("written back as %s, %v", back, err)
			}
		})
	}
	for _, bad := range []string{`true`, `{}`, `[]`, `null`} {
		if err := json.Unmarshal([]byte(bad), new(config.Size)); err == nil && bad != "null" {
			t.Errorf("%s is a size", bad)
		}
	}
}

func TestUlimit(t *testing.T) {
	tests := []struct {
		text       string
		soft, hard int64
		fails      string
	}{
		{`"1024:2048"`, 1024, 2048, ""}, {`"0"`, 0, 0, ""}, {`128`, 128, 128, ""}, {`"-1"`, -1, -1, ""},
		{`{"soft":1,"hard":2}`, 1, 2, ""}, {`{"soft":5}`, 5, 5, ""}, {`{"hard":7}`, 7, 7, ""}, {`"5:-1"`, 5, -1, ""},
		{`"2:1"`, 0, 0, "above"}, {`{"soft":2,"hard":1}`, 0, 0, "above"}, {`"-1:5"`, 0, 0, "above"},
		{`""`, 0, 0, "expected"}, {`"a"`, 0, 0, "expected"}, {`"1:2:3"`, 0, 0, "expected"}, {`"-2"`, 0, 0, "expected"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			var u config.Ulimit
			if err := json.Unmarshal([]byte(tt.text), &u); err != nil {
				t.Fatal(err)
			}
			soft, hard, err := u.Values()
			if soft != tt.soft || hard != tt.hard || (err != nil) != (tt.fails != "") {
				t.Errorf("got %d %d %v", soft, hard, err)
			}
			if err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("error is %v", err)
			}
			if back, err := json.Marshal(u); err != nil || string(back) != tt.text {
				t.Errorf("written back as %s, %v", back, err)
			}
		})
	}
	if err := json.Unmarshal([]byte(`{"soft":1,"other":2}`), new(config.Ulimit)); err == nil {
		t.Error("an unknown key was accepted")
	}
}

func TestNormalizeAgentID(t *testing.T) {
	tests := map[string]string{
		"main": "main", " Main ": "main", "a_b-c": "a_b-c", "My Agent!": "my-agent", "": "main", "!!!": "main",
		"日本": "main", "_x": "_x", "a\nb": "a-b", strings.Repeat("x", 70): strings.Repeat("x", 64),
	}
	for id, want := range tests {
		if got := config.NormalizeAgentID(id); got != want {
			t.Errorf("%q becomes %q, want %q", id, got, want)
		}
	}
}
