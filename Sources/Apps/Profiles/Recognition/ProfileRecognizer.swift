package import Model

/// Decides whether a server is of a profile's kind, from its responses to the profile's probe requests.
///
/// The caller sends each `nextRequest` on a connection of its own, without any secret, and reports the response.
package struct ProfileRecognizer: Sendable {
    /// The maximum length of a bundle identifier in bytes.
    private static let appLimit = 155
    /// The timeout of each probe request in seconds.
    package static let timeout = Duration.seconds(2)

    package enum Outcome: Hashable, Sendable {
        case undecided
        case match(ServerIdentity)
        /// The reason continues the sentence "it answers with".
        case mismatch(String)
    }

    /// A finished request, for a person who checks a profile.
    package struct Step: Hashable, Sendable {
        package let request: ProfileRequest
        /// The unmet condition; nil if the response met all conditions.
        package let mismatch: String?
    }

    package private(set) var outcome: Outcome = .undecided
    package private(set) var steps: [Step] = []
    private let profile: Profile
    private var responses: [String: JSON] = [:]

    package init(_ profile: Profile) { self.profile = profile }

    /// The request to send now; nil when the outcome is known.
    package var nextRequest: ProfileRequest? {
        guard outcome == .undecided else { return nil }
        // Recognition has no placeholders, so the request can always be built.
        return try? currentStep?.template.request([:], timeout: Self.timeout)
    }

    private var currentStep: RecognitionStep? {
        steps.count < profile.recognition.count ? profile.recognition[steps.count] : nil
    }

    /// Processes the response to `nextRequest`.
    package mutating func receive(_ response: AppResponse) {
        guard let step = currentStep else { return }
        if let path = step.template.path.literal, let json = response.json, responses[path] == nil {
            responses[path] = json
        }
        finish(mismatch: step.mismatch(response))
    }

    /// Processes the lack of a response to `nextRequest`: no connection, a closed connection, or a timeout. `reason`
    /// continues the sentence "it answers with".
    package mutating func fail(_ reason: String = "no response") {
        guard let step = currentStep else { return }
        if case .unequal = step.status { finish(mismatch: nil) } else { finish(mismatch: reason) }
    }

    private mutating func finish(mismatch: String?) {
        guard outcome == .undecided, let request = nextRequest else { return }
        steps.append(Step(request: request, mismatch: mismatch))
        if let mismatch {
            outcome = .mismatch("\(SanitizedText(mismatch, limit: 500)) to \(request)")
        } else if currentStep == nil {
            outcome = .match(server)
        }
    }

    private var server: ServerIdentity {
        func text(_ place: IdentitySource.Place?, limit: Int = SanitizedText.nameLimit) -> SanitizedText? {
            guard let place, let json = responses[place.path], let value = place.pointer.value(in: json) else {
                return nil
            }
            let text = SanitizedText(value.string ?? value.number?.text ?? "", limit: limit)
            return text.isEmpty ? nil : text
        }
        return ServerIdentity(
            kind: profile.kind,
            app: text(profile.identity.app, limit: Self.appLimit),
            version: text(profile.identity.version),
            launchID: text(profile.identity.launchID),
            wantsToken: profile.authentication.requiresSecret
        )
    }
}
