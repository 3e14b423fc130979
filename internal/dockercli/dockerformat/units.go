package dockerformat

import (
	"fmt"
	"strconv"
	"time"
)

// SizeText is docker's way of writing a size.
func SizeText(n int64) string {
	size := float64(n)
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if size < 1000 {
			return fmt.Sprintf("%.3g%s", size, unit)
		}
		size /= 1000
	}
	return fmt.Sprintf("%.3gTB", size)
}

// Span is a length of time in docker's words.
func Span(d time.Duration) string {
	seconds, hours := int(d.Seconds()), int(d.Hours()+0.5)
	switch minutes := int(d.Minutes()); {
	case seconds < 1:
		return "Less than a second"
	case seconds == 1:
		return "1 second"
	case seconds < 60:
		return strconv.Itoa(seconds) + " seconds"
	case minutes == 1:
		return "About a minute"
	case minutes < 60:
		return strconv.Itoa(minutes) + " minutes"
	case hours == 1:
		return "About an hour"
	case hours < 48:
		return strconv.Itoa(hours) + " hours"
	case hours < 24*14:
		return strconv.Itoa(hours/24) + " days"
	case hours < 24*60:
		return strconv.Itoa(hours/24/7) + " weeks"
	case hours < 24*365*2:
		return strconv.Itoa(hours/24/30) + " months"
	}
	return strconv.Itoa(int(d.Hours())/24/365) + " years"
}

// Moment returns a time as docker writes it in JSON.
func Moment(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
