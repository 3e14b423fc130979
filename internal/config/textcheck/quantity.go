package textcheck

import "regexp"

// quantityForm is a positive quantity of Kubernetes: a number and the unit of bytes.
var quantityForm = regexp.MustCompile(`^([1-9][0-9]{0,14}(\.[0-9]{1,9})?|0\.[0-9]{0,8}[1-9])([kMGTPE]|[KMGTPE]i)?$`)

// checkQuantity refuses what is no size as Kubernetes writes it.
func checkQuantity(text string) (message, hint string) {
	if !quantityForm.MatchString(text) {
		return "it must be a size as Kubernetes writes it", "write a number and a unit, such as 512Mi or 10Gi"
	}
	return "", ""
}
