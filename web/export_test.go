package web

// Route is a line of the table of routes, for tests outside the package.
type Route struct {
	Method, Path string
	Open         bool
}

// Routes gives the table of routes.
func Routes() []Route {
	var routes []Route
	for _, r := range (&API{}).routes() {
		routes = append(routes, Route{r.method, r.path, r.class == open})
	}
	return routes
}
