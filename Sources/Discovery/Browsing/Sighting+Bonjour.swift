import Model

extension Sighting {
    /// Creates the sighting of a resolved service; nil if the service type is invalid. The sighting is blocked if none
    /// of its addresses may be dialled.
    ///
    /// - Parameters:
    ///   - key: The key of the service.
    ///   - details: The contents of its records.
    ///   - addresses: The addresses of its machine.
    ///   - local: The interfaces of this machine.
    ///   - isFromThisHost: True if a responder of this host confirmed the service. Its loopback addresses then count as
    ///     received over loopback.
    init?(
        of key: ServiceKey,
        _ details: ResolvedService,
        at addresses: some Sequence<IPAddress>,
        seenFrom local: LocalInterfaces,
        isFromThisHost: Bool = false
    ) {
        guard let type = ServiceType(key.type) else { return nil }
        func interface(of address: IPAddress) -> CInt {
            isFromThisHost && address.isLoopback ? IPAddress.loopbackInterface : key.interface
        }
        let checked = Set(addresses).map { ($0, refusal: $0.refusal(from: interface(of: $0), local)) }
        let ranked = checked.filter { $0.refusal == nil }
            .map { (rank: local.rank(of: $0.0), text: $0.0.description, interface: interface(of: $0.0)) }
            .sorted { ($0.rank, $0.text) < ($1.rank, $1.text) }
        let kind = EndpointKind(serviceType: type)
        let identity = AdvertisedIdentity(instance: key.instance, kind: kind, txt: details.txt)
        let dartVM = kind == .dartVM ? DartVMAdvertisement(details.txt, port: details.port) : nil
        let machine = SanitizedText(MachineName.decoding(details.machine), limit: 255)
        self.init(
            id: key.id,
            kind: kind,
            app: identity.app,
            appIsBundleID: identity.appIsBundleID,
            name: SanitizedText(key.instance),
            machine: machine,
            role: identity.role,
            version: identity.version,
            txt: dartVM?.txt ?? details.txt,
            routes: ranked.map { address in
                .network(
                    NetworkRoute(
                        address: address.text,
                        port: details.port,
                        interface: local.names[address.interface],
                        interfaceIndex: UInt32(bitPattern: address.interface),
                        machine: machine
                    )
                )
            },
            port: details.port,
            launchID: identity.launchID,
            blocked: ranked.isEmpty
                ? checked.compactMap(\.refusal).min().map { "\($0); Patchbay does not connect to it" } : nil,
            authCode: dartVM?.authCode
        )
    }
}

/// The identity that an advertisement claims: the fields of a sighting that come from its name and TXT record.
///
/// These fields are not verified. The registry and the user decide whether to trust them.
struct AdvertisedIdentity: Hashable, Sendable {
    let app: SanitizedText
    let appIsBundleID: Bool
    let version: SanitizedText?
    let launchID: SanitizedText?
    let role: SanitizedText

    /// The maximum length of a bundle identifier in App Store Connect.
    static let bundleIDLimit = 155

    /// Reads the identity from the instance name as received and from the TXT record.
    init(instance: String, kind: EndpointKind, txt: TXTRecord) {
        if let bundleID = Self.bundleID(instance: instance, kind: kind, txt: txt) {
            app = SanitizedText(bundleID, limit: Self.bundleIDLimit)
            appIsBundleID = true
        } else {
            // Flutter's tool names its instance after the computer, and the app in a key of its own.
            app = (kind == .dartVM ? Self.text(txt["project_name"]) : nil) ?? SanitizedText(instance)
            appIsBundleID = false
        }
        version = Self.text(txt["version"] ?? txt["ver"])
        launchID = Self.text(txt["boot"])
        // One project may run on several devices at once.
        role = Self.text(txt["role"] ?? txt["id"] ?? (kind == .dartVM ? txt["device_id"] : nil)) ?? SanitizedText("")
    }

    private static func bundleID(instance: String, kind: EndpointKind, txt: TXTRecord) -> String? {
        if let stated = txt["bundleId"], isBundleID(stated) { return stated }
        let plain = BonjourInstance.withoutConflictSuffix(instance)
        switch kind {
        case .appreveal:
            // Every release of AppReveal names its instance after the bundle identifier.
            let prefix = "AppReveal-"
            guard plain.hasPrefix(prefix) else { return nil }
            let rest = String(plain.dropFirst(prefix.count))
            return isBundleID(rest) ? rest : nil
        case .dartVM:
            // Flutter's iOS engine uses the plain bundle identifier (FlutterDartVMServicePublisher).
            return isBundleID(plain) && plain.contains(".") ? plain : nil
        default: return nil
        }
    }

    /// Returns true for letters, digits, hyphens, dots, and the underscores of Android package names.
    private static func isBundleID(_ text: String) -> Bool {
        (1...bundleIDLimit).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0.isLetterOrDigit || "-._".utf8.contains($0) }
    }

    private static func text(_ value: String?) -> SanitizedText? {
        value.flatMap { $0.isEmpty ? nil : SanitizedText($0) }
    }
}
