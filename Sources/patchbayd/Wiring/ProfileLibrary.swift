import API
import Model
import Probing
import Profiles
import SystemIO

/// The profiles as the API uses them: the list, and checks of profile files.
struct ProfileLibrary: ProfileProvider {
    let catalog: ProfileCatalog
    let resolver: RegistryRouteResolver
    let checker: ProfileChecker

    func profiles() -> [ProfileSummary] { catalog.entries.map(\.summary) }

    /// Parses a profile file and tries it on the target.
    ///
    /// - Throws: `Problem` for an invalid file, and for a target that cannot be reached or is in use.
    func check(_ spec: ProfileCheckSpec) async throws -> ProfileCheck {
        let profile: Profile
        do { profile = try Profile(parsing: spec.text, file: spec.file) } catch {
            throw Problem(.badRequest, error.description, hint: "correct the file; docs/profiles.md has every key")
        }
        let summary = ProfileSummary(of: profile, in: spec.file)
        guard let target = spec.target else { return ProfileCheck(profile: summary) }
        do {
            guard let route = try await resolver.routes(to: target).first else {
                throw DialError(.noRoute, "no route to \(target) is known")
            }
            return try await checker.check(profile, summary, at: route)
        } catch let error as PortInUse {
            throw Problem(.conflict, error.description, hint: "patchbay tunnels")
        } catch let error as DialError {
            throw Problem(.unavailable, error.description)
        }
    }
}
