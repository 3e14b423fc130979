package service

import (
	"encoding/pem"
	"fmt"
	"os"
)

// companyRoots returns the certificates of outbound.caFile, in DER: pages come from
// servers of the company too, and their TLS is not opened on the way.
func (s *Service) companyRoots() (roots [][]byte, err error) {
	host, err := s.Outbound()
	if err != nil || host.CAFile() == "" {
		return nil, err
	}
	text, err := os.ReadFile(host.CAFile())
	if err != nil {
		return nil, fmt.Errorf("outbound.caFile: %w", err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			roots = append(roots, block.Bytes)
		}
	}
	return roots, nil
}
