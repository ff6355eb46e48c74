package ec2

import (
	"encoding/base64"
	"sort"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// pages says how an action pages: the least and the greatest page that may be asked for, and the page that is sent when
// nobody asks for a size; zero sends everything.
type pages struct {
	least, most, usual int
}

const tokenPrefix = "after:"

// page cuts one page out of items, which are in the order of their keys. A token names the key of the last item that
// was sent, so that items which come or go in between neither repeat nor hide others.
func page[T any](items []T, p pages, size *int32, token *string, key func(*T) string) ([]T, *string, *wire.Error) {
	n := p.usual
	if size != nil {
		n = int(*size)
		if n < p.least || n > p.most {
			return nil, nil, wire.Errorf("InvalidParameterValue", "Value ( %d ) for parameter maxResults is invalid. "+
				"Expecting a value between %d and %d.", n, p.least, p.most)
		}
	}
	if aws.ToString(token) != "" {
		last, ok := readToken(*token)
		if !ok {
			return nil, nil, wire.Errorf("InvalidNextToken", "The specified NextToken is not valid.")
		}
		items = items[sort.Search(len(items), func(i int) bool { return key(&items[i]) > last }):]
	}
	if n == 0 || len(items) <= n {
		return items, nil, nil
	}
	items = items[:n]
	next := base64.StdEncoding.EncodeToString([]byte(tokenPrefix + key(&items[n-1])))
	return items, &next, nil
}

func readToken(token string) (string, bool) {
	raw, err := base64.StdEncoding.DecodeString(token)
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(string(raw), tokenPrefix)
}
