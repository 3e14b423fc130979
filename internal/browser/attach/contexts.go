package attach

import "sync"

// Contexts are the browser contexts that the programs of one browser made. The zero value
// is ready.
type Contexts struct {
	mu    sync.Mutex
	owner map[string]*Filter
}

// isForeign reports whether a context was made by another program.
func (c *Contexts) isForeign(id string, f *Filter) bool {
	if id == "" {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	owner := c.owner[id]
	return owner != nil && owner != f
}

// add records who made a context. It reports false if the program has too many.
func (c *Contexts) add(id string, f *Filter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owner == nil {
		c.owner = map[string]*Filter{}
	}
	if owner := c.owner[id]; owner != nil && owner != f {
		return false // the browser lies
	}
	have := 0
	for _, owner := range c.owner {
		if owner == f {
			have++
		}
	}
	c.owner[id] = f
	return have < maxContexts
}

// remove forgets a context of a program, and with "" all of them.
func (c *Contexts) remove(id string, f *Filter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, owner := range c.owner {
		if owner == f && (id == "" || id == name) {
			delete(c.owner, name)
		}
	}
}
