package app

// What only tests reach: the second step of removals, without the first.
var IfGone = (*App).ifGone
