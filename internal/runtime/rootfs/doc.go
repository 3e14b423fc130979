// Package rootfs gives a sandbox its root directory: the programs of the host,
// seen read-only, or an OCI image that was unpacked once into a store of
// layers that images share.
//
// A Root is a description: host directories to lay over each other, and host
// paths to show on top. Mounting it is a runtime's business, building images is
// package image's. Images are hostile input: every name, link, size and
// digest in them is checked while they are unpacked, and nothing of them is run.
//
// A store directory may be used by several processes at once. What a crash
// leaves in it is not used, and is removed by the next collection:
//
//	index.json      which image has which names
//	layers/<name>/  unpacked layers: fs/ and info.json, complete or not there
//	pins/<owner>    which layers a sandbox stands on
//	tmp/            what is being made; everything here may vanish
//	lock            byte-range locks, see package lease
package rootfs
