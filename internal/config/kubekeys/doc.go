// Package kubekeys has the keys of kubernetes: their form in the file, their defaults, and
// where each value comes from.
package kubekeys
