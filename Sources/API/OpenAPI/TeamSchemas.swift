/// The bodies of `/v1/team`.
enum TeamSchemas {
    static let text = #"""
        "PEM":{"type":"string","pattern":"^-----BEGIN "},
        "TeamName":{"type":"string","minLength":1,"maxLength":32},
        "TeamStatus":{"description":"without a team, only the required members","type":"object",
          "required":["hosts","etcd","restartNeeded"],"properties":{
            "team":{"$ref":"#/components/schemas/TeamName"},"host":{"$ref":"#/components/schemas/HostName"},
            "authority":{"description":"the host with the certificate authority","$ref":"#/components/schemas/HostName"},
            "key":{"$ref":"#/components/schemas/KeyPin"},
            "certificateExpiresAt":{"$ref":"#/components/schemas/Date"},
            "hosts":{"type":"array","items":{"$ref":"#/components/schemas/TeamHostStatus"}},
            "etcd":{"type":"array","items":{"type":"object","required":["url"],"properties":{
              "url":{"type":"string"},"problem":{"type":"string"}}}},
            "staleSince":{"description":"the registry is unreachable since then","$ref":"#/components/schemas/Date"},
            "restartNeeded":{"type":"boolean","description":"the running broker uses another team or certificate than the saved one"},
            "problem":{"type":"string","description":"why this host cannot use the registry, or why other hosts cannot reach it"},
            "hint":{"type":"string","description":"the next step"}}},
        "TeamHostStatus":{"type":"object","required":["name","state","addresses","key"],"properties":{
          "name":{"$ref":"#/components/schemas/HostName"},"state":{"enum":["online","offline","unknown"]},
          "since":{"$ref":"#/components/schemas/Date"},"addresses":{"type":"array","items":{"type":"string"}},
          "version":{"type":"string"},"key":{"$ref":"#/components/schemas/KeyPin"}}},
        "TeamSpec":{"type":"object","required":["team"],"additionalProperties":false,"properties":{
          "team":{"$ref":"#/components/schemas/TeamName"},"host":{"$ref":"#/components/schemas/HostName"},
          "etcd":{"type":"array","items":{"type":"string","pattern":"^https://"}},
          "administrator":{"description":"of an etcd cluster with its own authority","type":"object",
            "required":["authority","certificate","key"],"additionalProperties":false,"properties":{
              "authority":{"$ref":"#/components/schemas/PEM"},"certificate":{"$ref":"#/components/schemas/PEM"},
              "key":{"$ref":"#/components/schemas/PEM"}}}}},
        "TeamJoinSpec":{"type":"object","required":["pairing"],"additionalProperties":false,"properties":{
          "pairing":{"type":"string","pattern":"^PATCHBAY-TEAM:"},"host":{"$ref":"#/components/schemas/HostName"}}},
        "TeamInviteSpec":{"type":"object","additionalProperties":false,"properties":{
          "address":{"type":"string","description":"this host's address in the pairing string"},
          "hosts":{"type":"integer","minimum":1,"maximum":1000,"default":1,"description":"how many may join, each once"},
          "seconds":{"type":"integer","minimum":1,"maximum":86400,"default":600},
          "names":{"type":"array","maxItems":100,"items":{"type":"string"},
            "description":"the names that the hosts may have; * is any text"}}},
        "OpenTeamInviteList":{"type":"object","required":["schema","invites"],"properties":{
          "schema":{"const":1},"invites":{"type":"array","items":{"type":"object",
            "required":["id","createdAt","expiresAt","hosts","names","admitted"],"properties":{
              "id":{"type":"string"},"createdAt":{"$ref":"#/components/schemas/Date"},
              "expiresAt":{"$ref":"#/components/schemas/Date"},"hosts":{"type":"integer"},
              "names":{"type":"array","items":{"type":"string"}},
              "admitted":{"description":"the hosts that have used it","type":"array",
                "items":{"$ref":"#/components/schemas/HostName"}}}}}}},
        "TeamInvite":{"type":"object","required":["pairing","expiresAt"],"properties":{
          "pairing":{"type":"string","description":"PATCHBAY-TEAM:1:HOST:PORT:PIN:INVITE, a secret"},
          "expiresAt":{"$ref":"#/components/schemas/Date"}}},
        "TeamMemberSpec":{"type":"object","required":["invite","host","request"],"additionalProperties":false,"properties":{
          "invite":{"$ref":"#/components/schemas/InviteToken"},"host":{"$ref":"#/components/schemas/HostName"},
          "request":{"$ref":"#/components/schemas/PEM"}}},
        "TeamMember":{"type":"object","required":["name","key","addedAt"],"properties":{
          "name":{"$ref":"#/components/schemas/HostName"},"key":{"$ref":"#/components/schemas/KeyPin"},
          "addedAt":{"$ref":"#/components/schemas/Date"}}},
        "TeamAdmission":{"type":"object",
          "required":["team","certificate","authority","authorityHost","etcd","members"],"properties":{
            "team":{"$ref":"#/components/schemas/TeamName"},"certificate":{"$ref":"#/components/schemas/PEM"},
            "authority":{"$ref":"#/components/schemas/PEM"},
            "authorityHost":{"$ref":"#/components/schemas/HostName"},
            "etcd":{"type":"array","items":{"type":"string"}},"etcdAuthority":{"$ref":"#/components/schemas/PEM"},
            "members":{"type":"array","items":{"$ref":"#/components/schemas/TeamMember"}}}},
        "TeamRenewalSpec":{"type":"object","required":["request"],"additionalProperties":false,"properties":{
          "request":{"$ref":"#/components/schemas/PEM"}}},
        "TeamRenewal":{"type":"object","required":["certificate"],"properties":{
          "certificate":{"$ref":"#/components/schemas/PEM"},"authority":{"$ref":"#/components/schemas/PEM"}}},
        "TeamCertificateSpec":{"type":"object","required":["request","addresses"],"additionalProperties":false,"properties":{
          "request":{"$ref":"#/components/schemas/PEM"},"addresses":{"type":"array","items":{"type":"string"}}}},
        "TeamCertificate":{"type":"object","required":["certificate","peerCertificate","authority"],"properties":{
          "certificate":{"$ref":"#/components/schemas/PEM"},
          "peerCertificate":{"description":"for the other nodes","$ref":"#/components/schemas/PEM"},
          "authority":{"$ref":"#/components/schemas/PEM"}}}
        """#
}
