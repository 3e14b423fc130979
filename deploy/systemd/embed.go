// Package systemd has the units of the gateway, as they are installed.
package systemd

import _ "embed" // for the units

// GatewayUnit is atoll-gateway.service.
//
//go:embed atoll-gateway.service
var GatewayUnit string

// DockerDropIn is the part of it for sandbox.backend docker.
//
//go:embed atoll-gateway.service.d/docker.conf
var DockerDropIn string
