/// A tunnel of the soak test and the app behind it.
struct SoakPath: Sendable, CustomStringConvertible {
    let port: UInt16
    let app: SoakApp
    let name: String
    /// True if no fault affects the path.
    let isSteady: Bool

    var description: String { "\(name), \(app.up) up, \(app.down) down" }
}
