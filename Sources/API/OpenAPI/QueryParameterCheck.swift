import Model

/// Refuses the query parameters that a route does not have, and those that a request repeats.
///
/// Otherwise a mistyped parameter is ignored, and the response has more than its reader asked for: `endpiont` in place of
/// `endpoint` would list every lease.
enum QueryParameterCheck {
    /// Throws a problem that names the first unknown or repeated parameter. Values are not repeated, because a value may
    /// be a secret.
    ///
    /// - Parameters:
    ///   - names: The names of the parameters of a request, in order.
    ///   - route: The route of the request.
    /// - Throws: `Problem`.
    static func check(_ names: some Sequence<String>, of route: APIRoute) throws(Problem) {
        let known = route.query.map(\.name)
        var given: Set<String> = []
        for name in names {
            guard known.contains(name) else {
                let start = "there is no query parameter \"\(SanitizedText(name, limit: 200))\""
                throw problem(
                    start + SimilarNameFinder.suggestion(for: name, among: known, listedAs: "query parameters")
                )
            }
            guard given.insert(name).inserted else { throw problem("the query has \"\(name)\" more than once") }
        }
    }

    private static func problem(_ detail: String) -> Problem {
        Problem(.badRequest, detail, hint: "see the parameters in GET /openapi.json")
    }
}
