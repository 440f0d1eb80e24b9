import AccessControl
package import Model
import Registry
import SystemIO
import TOML
import Tunnels

/// Lists the profiles of this broker, and checks profile files.
package struct ProfileService: Sendable {
    /// The profiles of this broker, in the order of their names.
    package let profiles: [ProfileSummary]
    private let resolver: ApprovedRouteResolver
    private let checker: ProfileChecker

    package init(_ profiles: [ProfileSummary], resolver: ApprovedRouteResolver, checker: ProfileChecker) {
        (self.profiles, self.resolver, self.checker) = (profiles, resolver, checker)
    }

    /// Parses a profile file and tries it on the target.
    ///
    /// - Throws: `Problem` for an invalid file, and for a target that cannot be reached or is in use.
    package func check(_ spec: ProfileCheckSpec) async throws -> ProfileCheck {
        let profile: Profile
        do { profile = try Profile(parsing: spec.text, file: spec.file) } catch {
            throw Problem(.badRequest, error.description, hint: "correct the file; docs/profiles.md has every key")
        }
        let summary = ProfileSummary(of: profile, in: spec.file)
        guard let target = spec.target else { return ProfileCheck(profile: summary) }
        do {
            return try await checker.check(profile, summary, at: try await route(to: target))
        } catch let error as PortInUse {
            throw Problem(.conflict, error.description, hint: "patchbay tunnels")
        } catch let error as DialError {
            throw Problem(.unavailable, error.description)
        }
    }

    /// Returns the first route to the target.
    ///
    /// - Throws: `Problem` for an endpoint that is offline or not approved; `RegistryError`, `DialError`.
    private func route(to target: TunnelTarget) async throws -> Route {
        if case .endpoint(let id) = target {
            let endpoint = try await resolver.registry.endpoint(id)
            guard !endpoint.routes.isEmpty, endpoint.state != .offline else {
                throw Problem(
                    .unavailable,
                    "\(endpoint.id) is offline, so the profile was not tried on it"
                        + (endpoint.reason.map { ": \($0)" } ?? ""),
                    hint: "start its server, and see `patchbay show \(endpoint.id)`"
                )
            }
            let trust = resolver.accessStore.approvals.trust(of: endpoint.id)
            if let refusal = ApprovalPolicy.refusal(of: endpoint, trust) {
                throw Problem(.forbidden, "the profile was not tried: \(refusal.detail)", hint: refusal.hint)
            }
        }
        guard let route = try await resolver.resolve(target).routes.first else {
            throw DialError(.noRoute, "no route to \(target) is known; see `patchbay list`")
        }
        return route
    }
}

extension ProfileSummary {
    package init(of profile: Profile, in file: String) {
        self.init(
            name: profile.name,
            title: profile.title,
            ports: profile.ports,
            file: file,
            toolCount: profile.tools.count
        )
    }
}
