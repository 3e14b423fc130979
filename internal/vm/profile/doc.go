// Package profile says what a virtual machine is to be: its directories with the places
// that they have inside, its sizes and its port, checked more strictly than Lima does.
package profile
