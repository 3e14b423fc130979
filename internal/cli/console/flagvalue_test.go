package console

import (
	"testing"
	"time"
)

func TestTimesHaveOneNotation(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90": 90 * time.Second, "90s": 90 * time.Second, "1m30s": 90 * time.Second, "0": 0, "500ms": 500 * time.Millisecond, "2d": 48 * time.Hour, "366d": maxTime,
	} {
		var got time.Duration
		if err := (&timeValue{to: &got, most: maxTime}).Set(text); err != nil || got != want {
			t.Errorf("%s is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "soon", "-1", "-1s", "-3d", "367d", "99999999999999999999", "9223372036854775807", "1e9", "1.5", "NaN"} {
		got := time.Minute
		if err := (&timeValue{to: &got, most: maxTime}).Set(text); err == nil || got != time.Minute {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
	var got time.Duration
	for _, text := range []string{"1500ms", "25h", "100000"} {
		if err := (&timeValue{to: &got, most: maxWork, whole: true}).Set(text); err == nil {
			t.Errorf("an agent may work for %v", got)
		}
	}
}

func TestSizesAndNumbersHaveLimits(t *testing.T) {
	var size string
	for text, ok := range map[string]bool{"512m": true, "2g": true, "1024t": true, "1025t": false, "0": false, "-1": false, "-5m": false, "lots": false, "": false} {
		if err := (sizeValue{&size}).Set(text); (err == nil) != ok {
			t.Errorf("size %q: %v", text, err)
		}
	}
	var n int
	for text, ok := range map[string]bool{"1": true, "10": true, "11": false, "0": false, "-3": false, "x": false} {
		if err := (countValue{&n, 10}).Set(text); (err == nil) != ok {
			t.Errorf("number %q: %v", text, err)
		}
	}
}

func TestTimesAreShownShort(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "", time.Minute: "1m", 10 * time.Minute: "10m", 90 * time.Second: "1m30s", 24 * time.Hour: "24h", 90 * time.Minute: "1h30m"} {
		if got := (&timeValue{to: &d}).String(); got != want {
			t.Errorf("%v is shown as %q", time.Duration(d), got)
		}
	}
}
