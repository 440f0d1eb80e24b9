/// A kind of report of the broker about itself. Each has one severity in every place that shows it.
///
/// `patchbay status` and `patchbay doctor` exit with 1 after a problem. Information is `ok` for both.
package enum BrokerFact: CaseIterable, Sendable {
    /// usbmuxd does not run. udev starts it with the first phone.
    case usbmuxdAsleep
    /// A source connects, and has nothing to complain about.
    case sourceStarting
    /// A source does not work, or works only in part.
    case sourceDegraded
    /// The stored access state has a finding.
    case accessFinding
    /// A file of the state folder cannot be written.
    case unwritableState
    /// The remote listener waits for its address.
    case remoteWaiting
    /// The owner's certificate of the remote listener cannot be used, or ends soon.
    case remoteCertificate
    /// The owner's certificate of the remote listener has ended. It is still served, so that clients
    /// name the reason.
    case remoteCertificateEnded
    /// A running broker cannot start again with its configuration file.
    case configurationInvalid
    /// No broker runs, and its configuration file is invalid.
    case startPrevented
    /// A person has to unlock a phone, or to allow this machine.
    case phoneNeedsPerson
    /// A phone is not usable yet.
    case phoneConnecting
    /// A phone whose ports are reached is not paired.
    case phoneUnpaired
    /// Another server answers at an approved address.
    case serverChanged
    /// An endpoint waits for an approval.
    case approvalPending
    /// A program asks for access.
    case accessRequested
    /// Access requests are closed after wrong codes.
    case requestsClosed

    package var severity: BrokerProblem.Severity {
        switch self {
        case .unwritableState, .startPrevented, .remoteCertificateEnded: .problem
        case .sourceDegraded, .accessFinding, .remoteWaiting, .remoteCertificate, .configurationInvalid,
            .phoneNeedsPerson, .serverChanged,
            .requestsClosed:
            .warning
        case .usbmuxdAsleep, .sourceStarting, .phoneConnecting, .phoneUnpaired, .approvalPending, .accessRequested:
            .information
        }
    }
}

extension SourceStatus {
    /// The kind of the problem; nil for a source that works or is off.
    package var fact: BrokerFact? {
        guard isDegraded else { return nil }
        if name == BrokerPart.usbmuxd.rawValue, state == .missing { return .usbmuxdAsleep }
        return state == .starting && hint == nil ? .sourceStarting : .sourceDegraded
    }
}
