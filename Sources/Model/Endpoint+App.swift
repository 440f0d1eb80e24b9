/// Which app an endpoint is of, as people say it: in any case.
extension Endpoint {
    /// Whether this is its name, or its app's.
    package func isNamed(_ text: String) -> Bool {
        let wanted = text.lowercased()
        return name.text.lowercased() == wanted || app.text.lowercased() == wanted
    }

    /// The same, or the last part of its bundle identifier: `shop` for `com.example.shop`.
    package func isApp(_ text: String) -> Bool {
        isNamed(text) || app.text.lowercased().split(separator: ".").last.map(String.init) == text.lowercased()
    }
}
