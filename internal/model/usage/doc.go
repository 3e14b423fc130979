// Package usage turns tokens into money and keeps both within budgets.
//
// A call reserves the worst it can cost before it is made, and settles what it
// did cost afterwards. Both are one record of a journal that all processes of a
// state directory share: a process takes the journal's lock, reads what others
// wrote since it last looked, decides by the whole state and appends. So
// budgets hold across processes, and a process that is killed loses nothing:
// what it had reserved stays reserved until another process finds it dead, and is
// then charged in full and marked, because what the upstream did is not known.
// In the background the journal's settled calls move into SQLite, where
// queries read them.
//
// Money is a whole number of millionths of a US dollar. The package has
// nothing of HTTP or sandboxes; subjects are opaque keys to it.
package usage
