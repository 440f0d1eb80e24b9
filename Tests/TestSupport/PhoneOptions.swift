/// The properties of a simulated phone; `usbmuxd/README.md` explains each.
package struct PhoneOptions: Sendable {
    package enum Fault: String, Sendable {
        case none
        /// The phone never finishes the handshake, so usbmuxd never lists it.
        case neverListed = "noversion"
        /// The phone never answers a Connect.
        case silentConnect = "dropsyn"
        /// The phone stops sending.
        case mute
    }

    /// The address on which the phone's apps really listen.
    package var address = "127.0.0.1"
    /// The difference between an app's real port and its port on the phone.
    package var portOffset = 0
    /// The cable's speed each way in kB/s; 0 for no limit. USB 2 is 40,000.
    package var rate = 40_000
    /// The largest packet to the host in bytes with headers, 128 to 65,535.
    package var packet = 16_384
    package var fault = Fault.none
    /// The lockdownd of the phone; nil for a phone that has none.
    package var lockdown: LockdownServer?

    package init() {}

    package static var usual: PhoneOptions { PhoneOptions() }

    /// A phone whose apps are only those on `loopback`, instead of all programs on 127.0.0.1.
    package static var ofItsOwn: PhoneOptions {
        var options = PhoneOptions()
        options.address = loopback
        return options
    }

    /// A loopback address that no other test process uses.
    package static let loopback =
        "127.\(UInt8.random(in: 64...127)).\(UInt8.random(in: 0...255)).\(UInt8.random(in: 1...254))"

    package static func fault(_ fault: Fault) -> PhoneOptions {
        var options = PhoneOptions()
        options.fault = fault
        return options
    }

    /// The content of the control file for `usbmuxd/control.c`.
    var text: String {
        """
        addr=\(address)
        offset=\(portOffset)
        lockdown=\(lockdown?.port ?? 0)
        rate=\(rate)
        packet=\(packet)
        fault=\(fault.rawValue)

        """
    }
}
