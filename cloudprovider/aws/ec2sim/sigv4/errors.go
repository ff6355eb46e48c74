package sigv4

import "net/http"

// Fault is why a signature was refused.
type Fault int

// The faults.
const (
	NoSignature    Fault = iota // the request is not signed at all
	Malformed                   // the header can't be understood
	UnknownKey                  // nobody has this key, or its session token is another one
	WrongSignature              // the key is known, its secret was not used
	ExpiredToken                // the temporary credentials are too old
	Skewed                      // the request was signed too long ago, or in the future
)

// Error is a refused signature.
type Error struct {
	Fault   Fault
	Message string
}

func (e *Error) Error() string { return e.Message }

func refuse(f Fault, message string) error { return &Error{Fault: f, Message: message} }

// answer is how a service words a refusal.
type answer struct {
	status int
	code   string
}

// For says with which status, code and message a service (by its signing name) refuses. The same fault has another name
// almost everywhere: the query services speak of client token ids, those with JSON throw exceptions, and EC2 does not
// tell a wrong key from a wrong secret.
func (e *Error) For(service string) (status int, code, message string) {
	switch service {
	case "ec2":
		a := ec2Answer(e.Fault)
		message = e.Message
		switch a.code {
		case "AuthFailure":
			message = "AWS was not able to validate the provided access credentials"
		case "RequestExpired":
			message = "Request has expired."
		}
		return a.status, a.code, message
	case "iam", "sts", "sqs":
		a := queryAnswer(e.Fault)
		return a.status, a.code, e.Message
	case "eks", "arc-zonal-shift":
		return http.StatusForbidden, jsonCode(e.Fault), e.Message
	default:
		return http.StatusBadRequest, jsonCode(e.Fault), e.Message
	}
}

func ec2Answer(f Fault) answer {
	switch f {
	case NoSignature:
		return answer{http.StatusBadRequest, "MissingAuthenticationToken"}
	case Malformed:
		return answer{http.StatusBadRequest, "IncompleteSignature"}
	case ExpiredToken, Skewed:
		return answer{http.StatusBadRequest, "RequestExpired"}
	default:
		return answer{http.StatusUnauthorized, "AuthFailure"}
	}
}

func queryAnswer(f Fault) answer {
	switch f {
	case NoSignature:
		return answer{http.StatusForbidden, "MissingAuthenticationToken"}
	case Malformed:
		return answer{http.StatusBadRequest, "IncompleteSignature"}
	case ExpiredToken:
		return answer{http.StatusForbidden, "ExpiredToken"}
	case UnknownKey:
		return answer{http.StatusForbidden, "InvalidClientTokenId"}
	default:
		return answer{http.StatusForbidden, "SignatureDoesNotMatch"}
	}
}

func jsonCode(f Fault) string {
	switch f {
	case NoSignature:
		return "MissingAuthenticationTokenException"
	case Malformed:
		return "IncompleteSignatureException"
	case ExpiredToken:
		return "ExpiredTokenException"
	case UnknownKey:
		return "UnrecognizedClientException"
	default:
		return "InvalidSignatureException"
	}
}
