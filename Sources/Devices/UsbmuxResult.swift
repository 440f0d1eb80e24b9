/// The number with which usbmuxd answers a request that has no other answer (usbmuxd-proto.h).
package enum UsbmuxResult: Hashable, Sendable {
    case ok
    /// A request that it does not know, or one with a missing key. netmuxd says this for every Connect that failed.
    case badCommand
    /// No device has that DeviceID; also what each 65,536th Connect to one device gets for no reason of its own.
    case badDevice
    /// Nothing listens on that port of the phone.
    case refused
    case badVersion
    case other(UInt32)

    package init(code: UInt32) {
        self =
            switch code {
            case 0: .ok
            case 1: .badCommand
            case 2: .badDevice
            case 3: .refused
            case 6: .badVersion
            default: .other(code)
            }
    }

    package var code: UInt32 {
        switch self {
        case .ok: 0
        case .badCommand: 1
        case .badDevice: 2
        case .refused: 3
        case .badVersion: 6
        case .other(let code): code
        }
    }
}

extension UsbmuxResult: CustomStringConvertible {
    package var description: String {
        switch self {
        case .ok: "ok"
        case .badCommand: "\"bad command\" (1)"
        case .badDevice: "\"no such device\" (2)"
        case .refused: "\"connection refused\" (3)"
        case .badVersion: "\"bad version\" (6)"
        case .other(let code): "result \(code)"
        }
    }
}
