/// A tunnel of a soak, and the app at its end.
struct SoakPath: Sendable, CustomStringConvertible {
    let port: UInt16
    let app: SoakApp
    let name: String
    /// Whether it leads past everything that comes and goes.
    let isSteady: Bool

    var description: String { "\(name), \(app.up) up, \(app.down) down" }
}
