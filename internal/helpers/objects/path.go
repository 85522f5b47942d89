// SPDX-License-Identifier: Apache-2.0

package objects

import "strings"

// OfPath returns the key of the object that the path of a request names, and the rest of the path:
// a subresource, or the whole path if it names no object.
//
//	/api/v1/namespaces/NAMESPACE/pods/NAME/status
//	/apis/GROUP/VERSION/RESOURCE/NAME
func OfPath(path string) (key, rest string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return "", path
	}
	switch {
	case len(parts) >= 4 && parts[0] == "namespaces":
		return parts[1] + "/" + parts[3], strings.Join(parts[4:], "/")
	case len(parts) >= 2 && !(len(parts) == 3 && parts[0] == "namespaces"):
		return parts[1], strings.Join(parts[2:], "/")
	}
	return "", path
}
