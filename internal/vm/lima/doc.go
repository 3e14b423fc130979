// Package lima writes the file that Lima makes a virtual machine from, for Lima 1.x and
// 2.x, and runs its program limactl.
package lima
