// Command atoll-kube is atoll with the runtime that makes sandboxes on a Kubernetes
// cluster. Program atoll executes it when the configuration asks for that backend.
package main
