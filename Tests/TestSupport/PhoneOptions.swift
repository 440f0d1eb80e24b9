/// What a fake phone is like; README.md of the rig's C part explains each.
package struct PhoneOptions: Sendable {
    package enum Fault: String, Sendable {
        case none
        /// The phone never finishes the handshake, so usbmuxd never lists it.
        case neverListed = "noversion"
        /// A Connect to the phone is never answered.
        case silentConnect = "dropsyn"
        /// The phone stops sending.
        case mute
    }

    /// An app that listens on a port of the phone really listens on this address …
    package var address = "127.0.0.1"
    /// … at the phone's port plus this.
    package var portOffset = 0
    /// The cable's speed each way in kB/s; 0 for no limit. USB 2 is 40,000.
    package var rate = 40_000
    /// The largest packet to the host in bytes with headers, 128 to 65,535.
    package var packet = 16_384
    package var fault = Fault.none

    package init() {}

    package static var usual: PhoneOptions { PhoneOptions() }

    /// A phone whose apps are those on `loopback`, and not everything that runs on this machine.
    package static var ofItsOwn: PhoneOptions {
        var options = PhoneOptions()
        options.address = loopback
        return options
    }

    /// An address of the loopback network that no other test process uses.
    package static let loopback =
        "127.\(UInt8.random(in: 64...127)).\(UInt8.random(in: 0...255)).\(UInt8.random(in: 1...254))"

    package static func fault(_ fault: Fault) -> PhoneOptions {
        var options = PhoneOptions()
        options.fault = fault
        return options
    }

    /// The control file of `usbmuxd/control.c`.
    var text: String {
        "addr=\(address)\noffset=\(portOffset)\nrate=\(rate)\npacket=\(packet)\nfault=\(fault.rawValue)\n"
    }
}
