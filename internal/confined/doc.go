// Package confined runs programs on bytes that an agent chose. Such a process
// has namespaces of its own, so it sees no network and no other process, an
// environment made from nothing, and limits that hold before it reads its first
// byte. What it writes is bounded.
package confined
