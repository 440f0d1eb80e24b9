/// Who is compared.
enum ForwarderKind: String, CaseIterable, Codable, Sendable {
    /// No forwarder: a client of usbmuxd itself.
    case mux = "direct, usbmuxd"
    /// No forwarder and no usbmuxd: a client of the app itself.
    case tcp = "direct, TCP"
    case iproxy
    /// Leads to unix sockets of the apps: it does not speak to usbmuxd, and is spared the handshake.
    case socat
    case patchbay = "Patchbay"
    /// A tunnel to an endpoint: TCP on both sides, and so without the limit that usbmuxd's descriptors set.
    case endpoint = "Patchbay, endpoint"

    /// Who everybody is compared with.
    static let reference = iproxy

    /// Whether there is a process whose figures can be read.
    var isProgram: Bool { self != .mux && self != .tcp }

    func stands(on bed: Bed.Kind) -> Bool {
        switch self {
        case .mux, .iproxy, .patchbay: true
        case .tcp, .socat, .endpoint: bed == .plain
        }
    }
}
