// Package local builds images for sandboxes that need no engine, on a machine
// without one. Packages are fetched on the host by the host's own clients and
// compared with their checksums; they are unpacked, and their scripts run, in a
// sandbox without a network; what comes out of it is an archive like that of any
// image, checked by the store of images and added there as one layer on a base.
package local
