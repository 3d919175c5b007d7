package contract

import (
	"testing"

	"molrun/app/test/must"
)

func TestInputsOfAnOperationAreFoundThroughReferences(t *testing.T) {
	spec, err := Parse([]byte(`
openapi: 3.1.0
paths:
  /things/{name}:
    parameters: [{name: name, in: path, required: true}]
    post:
      parameters: [{$ref: '#/components/parameters/Limit'}]
      requestBody: {$ref: '#/components/requestBodies/Thing'}
components:
  parameters: {Limit: {name: limit, in: query}}
  requestBodies: {Thing: {content: {application/json: {schema: {anyOf: [{$ref: '#/components/schemas/Thing'}, {type: object}]}}}}}
  schemas:
    Thing: {required: [size], properties: {size: {}, parts: {items: {$ref: '#/components/schemas/Part'}}}}
    Part: {allOf: [{properties: {weight: {}}}, {properties: {colour: {}}}]}
`))
	must.OK(t, err)
	want := []Input{
		{"body", "parts", false},
		{"body", "parts.colour", false},
		{"body", "parts.weight", false},
		{"body", "size", true},
		{"path", "name", true},
		{"query", "limit", false},
	}
	must.Equal(t, "inputs", spec.Inputs(Operation{"POST", "/things/{name}"}), want)
}
