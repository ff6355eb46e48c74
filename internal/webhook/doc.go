// Package webhook lets the API server serve several versions of our kinds: it answers the API server's requests to
// convert objects, keeps the certificate that it answers with, tells the CustomResourceDefinitions where it is and whom
// to trust, and has objects that an older version wrote stored anew.
//
// It stands on floor 3, beside the loop: nothing is decided here and nothing here knows of plans. It touches the API
// server and one TCP port. Every replica serves; what they write (a Secret, the CustomResourceDefinitions) any of them
// may write, and a conflict is settled by looking again. Only the leader takes the place of another webhook that
// answers, and stores objects anew.
package webhook
