// The part of Swagger UI that this application uses. Its script adds itself to window.
type SwaggerElement = unknown
type SwaggerComponent = (props: { getComponent: (name: string, container?: boolean) => SwaggerElement }) => SwaggerElement
type SwaggerPlugin = (system: { React: { createElement: (type: SwaggerElement, props: object, ...children: SwaggerElement[]) => SwaggerElement } }) => { components: Record<string, SwaggerComponent> }

interface Window {
  SwaggerUIBundle: (options: Record<string, unknown>) => unknown
}
