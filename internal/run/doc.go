// Package run carries out one task with one agent in one sandbox of its own: from
// the request to the receipt.
//
//	accept → queue → sandbox ready → files in → grant → execute → answer
//	       → settle the bill → finishers → sandbox removed
//
// Every step is in the store before the next begins. A process that dies leaves
// a run that the next start brings to an end: what had no answer yet has failed,
// what had one is settled and finished as if nothing had happened. A run is
// never carried out twice, and never charged twice.
//
// What an agent is made of (image, command, files, how its output is read) is a
// Variant, an entry of a registry. Where it runs, and what its model calls cost,
// comes in through small interfaces: this package imports no runtime and no proxy.
package run
