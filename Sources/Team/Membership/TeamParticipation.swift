/// The team in which the broker takes part, as the commands of `patchbay team` see and change it.
package protocol TeamParticipation: Sendable {
    /// The state of the running team; nil if the broker takes part in none.
    var state: TeamSetup.Running? { get }

    /// Takes part in the saved team, or uses its changed files. Returns when the change is complete.
    func useSavedTeam() async

    /// Ends the part in the team. Returns when no connection of another host is left.
    func end() async
}
