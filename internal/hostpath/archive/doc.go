// Package archive turns files of the host into tar archives and back: regular
// files and directories, their permissions and times, and symbolic links where the
// caller asks for them, nothing else. What comes
// out of an archive lands below one directory, whatever the archive says: it may
// have been made inside a sandbox.
//
// Moving archives in and out of sandboxes is package machine's.
package archive
