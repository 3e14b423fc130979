package config

// outboundFile is outbound as it may be written.
type outboundFile struct {
	CA *string `json:"caFile" check:"hostPath" doc:"File with the certificates of a company, trusted beside the system's wherever the host calls others."`
}

// OutboundCA returns the file of outbound.caFile; "" if there is none.
func (c *Config) OutboundCA() (string, error) {
	f := orEmpty(c.file.Outbound)
	if f.CA == nil {
		return "", nil
	}
	return c.hostPath(*f.CA)
}
