// SPDX-License-Identifier: Apache-2.0

package openapi

import "errors"

// Encode2 fails in a browser: the library is too large for a program there, and no kubectl asks it.
func Encode2(any) ([]byte, error) { return nil, errors.New("no protobuf in a browser") }
