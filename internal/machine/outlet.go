package machine

import "io"

// outlet passes one output of a command on.
type outlet struct {
	w     io.Writer
	limit int64
	total int64
	head  int64
}

func (o *outlet) write(b []byte) error {
	o.total += int64(len(b))
	if o.w == nil {
		return nil
	}
	n, err := o.w.Write(b)
	o.head += int64(n)
	return err
}

// account says what became of total bytes.
func (o *outlet) account(total int64) Output {
	return Output{Total: max(total, o.total), Head: o.head}
}
