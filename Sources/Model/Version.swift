/// Which Patchbay this is; the daemon and the command line are always built together.
package enum Version {
    package static let text = "0.1.0"
}
