package web

import "molrun/app/job/apikey"

// Route is an entry of the route table, for tests outside the package.
type Route struct {
	Method, Path string
	Open         bool
	Needs        apikey.Rights
}

// Routes returns the route table.
func Routes() []Route {
	var routes []Route
	for _, r := range (handlers{}).routes() {
		routes = append(routes, Route{r.method, r.path, r.class == open || r.class == sharing, r.needs})
	}
	return routes
}

// Audited reports whether a route is audited.
func Audited(route string) bool { return audited[route] != "" }

// ControlRoutes returns the operator's route table.
func ControlRoutes() []Route {
	var routes []Route
	for _, r := range (control{}).routes() {
		routes = append(routes, Route{r.method, r.path, true, 0})
	}
	return routes
}
