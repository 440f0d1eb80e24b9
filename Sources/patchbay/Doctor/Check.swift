/// One thing that `patchbay doctor` looked at.
struct Check: Encodable, Equatable {
    enum Verdict: String, Encodable {
        case ok
        /// It works, or will; there is something to know.
        case warn
        /// It keeps Patchbay from its work.
        case fail

        var style: ANSIStyle {
            switch self {
            case .ok: .green
            case .warn: .yellow
            case .fail: .red
            }
        }
    }

    let name: String
    let verdict: Verdict
    let detail: String
    /// What to type or do.
    var remedy: String?
}
