package verify

// DiskReserve compares the bytes that are allocated on the disk of the state
// directory, so that no sandbox can take the last of it, with what is promised.
// held is -1 where the file system cannot allocate any.
func DiskReserve(held, promised int64) Check {
	const name = "disk reserve"
	want := inBytes(float64(promised)) + " kept from sandboxes"
	if held < 0 {
		return note(limitRing, name, want, "none: the file system of the state directory cannot allocate space")
	}
	return compare(limitRing, name, held >= promised, want, inBytes(float64(held))+" allocated")
}
