package docker

import (
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
)

// everyGPU is the count that means all of them.
const everyGPU = -1

// parseGPUs reads a request as the docker command line writes it after --gpus:
// "all", "2", "device=GPU-1", "\"device=0,2\",capabilities=utility".
func parseGPUs(text string) (container.DeviceRequest, error) {
	request := container.DeviceRequest{Options: map[string]string{}, Capabilities: [][]string{{"gpu"}}}
	fields, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return request, fmt.Errorf("gpus %q: %w", text, err)
	}
	seen := map[string]bool{}
	for _, field := range fields {
		key, value, hasKey := strings.Cut(field, "=")
		if !hasKey {
			key, value = "count", field
		}
		if seen[key] {
			return request, fmt.Errorf("gpus %q: %s is given twice", text, key)
		}
		seen[key] = true
		if err := setGPUField(&request, key, value); err != nil {
			return request, fmt.Errorf("gpus %q: %w", text, err)
		}
	}
	switch {
	case seen["count"] && seen["device"]:
		return request, fmt.Errorf("gpus %q: count and device exclude each other", text)
	case !seen["count"] && !seen["device"]:
		request.Count = 1
	}
	return request, nil
}

func setGPUField(request *container.DeviceRequest, key, value string) (err error) {
	switch key {
	case "count":
		request.Count, err = parseGPUCount(value)
	case "device":
		request.DeviceIDs = strings.Split(value, ",")
	case "driver":
		request.Driver = value
	case "capabilities":
		request.Capabilities = [][]string{append(strings.Split(value, ","), "gpu")}
	case "options":
		for option := range strings.SplitSeq(value, ",") {
			name, setting, _ := strings.Cut(option, "=")
			request.Options[name] = setting
		}
	default:
		err = fmt.Errorf("%q is not one of count, device, driver, capabilities, options", key)
	}
	return err
}

func parseGPUCount(text string) (int, error) {
	if text == "all" {
		return everyGPU, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, errors.New("the count must be \"all\" or a number from 1 on")
	}
	return n, nil
}
