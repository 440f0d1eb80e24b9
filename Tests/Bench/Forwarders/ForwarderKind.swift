/// The compared forwarders.
enum ForwarderKind: String, CaseIterable, Codable, Sendable {
    /// No forwarder: the client connects to usbmuxd.
    case mux = "direct, usbmuxd"
    /// No forwarder and no usbmuxd: the client connects to the app.
    case tcp = "direct, TCP"
    case iproxy
    /// socat to the apps' unix sockets, without usbmuxd and its handshake.
    case socat
    case patchbay = "Patchbay"
    /// A tunnel to an endpoint: TCP on both sides, without the stream limit of usbmuxd's descriptors.
    case endpoint = "Patchbay, endpoint"

    /// The forwarder to which the others are compared.
    static let reference = iproxy

    /// True if there is a process to measure.
    var isProgram: Bool { self != .mux && self != .tcp }

    func stands(on bed: TestBed.Kind) -> Bool {
        switch self {
        case .mux, .iproxy, .patchbay: true
        case .tcp, .socat, .endpoint: bed == .plain
        }
    }
}
