// Package kubernetes is the folder of the objects that Atoll is made of on a cluster.
// It has no code: its tests apply them, and compare them with the chart's.
package kubernetes
