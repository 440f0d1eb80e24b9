extension OpenAPISchemas {
    /// The documents about who may do what; without the braces around them.
    static let access = #"""
        "Scope":{"enum":["registry.read","endpoint.call","tunnel.open","secret.use","invite.create","admin"]},
        "Selector":{"oneOf":[{"const":"all"},
          {"type":"object","required":["endpoints"],"properties":{
            "endpoints":{"type":"array","items":{"$ref":"#/components/schemas/EndpointID"}}}},
          {"type":"object","required":["bundles"],"properties":{
            "bundles":{"type":"array","items":{"type":"string"}}}}]},
        "Permissions":{"type":"object","required":["scopes","selector"],"properties":{
          "scopes":{"type":"array","items":{"$ref":"#/components/schemas/Scope"}},
          "selector":{"$ref":"#/components/schemas/Selector"}}},
        "Binding":{"description":"who, beside holding the token, one must be","oneOf":[{"const":"bearer"},
          {"type":"object","required":["user"],"properties":{"user":{"type":"integer"}}},
          {"type":"object","required":["key"],"properties":{"key":{"type":"string"}}}]},
        "AuditActor":{"oneOf":[{"enum":["stranger","broker"]},
          {"type":"object","required":["grant"],"properties":{"grant":{"type":"string"}}},
          {"type":"object","required":["uid","pid","exe"],"properties":{
            "uid":{"type":"integer"},"pid":{"type":"integer"},"exe":{"type":"string"}}}]},
        "InviteToken":{"type":"string","description":"a secret","pattern":"^pbi_[0-9A-Za-z]{8}_[0-9A-Za-z]{22}_[0-9A-Za-z]{6}$"},
        "GrantToken":{"type":"string","description":"a secret, for Authorization: Bearer",
          "pattern":"^pbg_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$"},
        "InviteSpec":{"type":"object","required":["permissions"],"properties":{
          "permissions":{"$ref":"#/components/schemas/Permissions"},"uses":{"type":"integer"},
          "lifetime":{"type":"integer","description":"seconds"},
          "grantLifetime":{"type":"integer","description":"seconds"},
          "grantIdle":{"type":"integer","description":"seconds"},"user":{"type":"integer"},
          "qr":{"type":"boolean","description":"whether the answer is to have the pairing string as a QR code, too"}}},
        "Invite":{"type":"object",
          "required":["id","permissions","uses","used","wrong","createdBy","created","expires"],"properties":{
            "id":{"type":"string"},"permissions":{"$ref":"#/components/schemas/Permissions"},
            "uses":{"type":"integer"},"used":{"type":"integer"},"wrong":{"type":"integer"},
            "createdBy":{"$ref":"#/components/schemas/Caller"},"created":{"$ref":"#/components/schemas/Date"},
            "expires":{"$ref":"#/components/schemas/Date"},"end":{"enum":["spent","expired","revoked","burnt"]}}},
        "IssuedInvite":{"type":"object","required":["invite","token"],"properties":{
          "invite":{"$ref":"#/components/schemas/Invite"},"token":{"$ref":"#/components/schemas/InviteToken"},
          "pairing":{"type":"string","description":"PATCHBAY:1:HOST:PORT:PIN:TOKEN, a secret"},
          "qr":{"type":"string","contentMediaType":"image/svg+xml",
            "description":"the pairing string as a QR code, as secret as that; told this once and kept nowhere"}}},
        "InviteList":{"type":"object","required":["schema","invites"],"properties":{
          "schema":{"const":1},"invites":{"type":"array","items":{"$ref":"#/components/schemas/Invite"}}}},
        "RedemptionSpec":{"type":"object","required":["token","client","name"],"properties":{
          "token":{"$ref":"#/components/schemas/InviteToken"},
          "client":{"type":"string","description":"22 to 1,024 random letters, kept to oneself"},
          "name":{"type":"string"},"permissions":{"$ref":"#/components/schemas/Permissions"}}},
        "Grant":{"type":"object",
          "required":["id","name","permissions","binding","created","expires","lastUsed","idleSeconds"],"properties":{
            "id":{"type":"string"},"name":{"type":"string"},
            "permissions":{"$ref":"#/components/schemas/Permissions"},
            "binding":{"$ref":"#/components/schemas/Binding"},"parent":{"type":"string"},
            "invite":{"type":"string"},"created":{"$ref":"#/components/schemas/Date"},
            "expires":{"$ref":"#/components/schemas/Date"},"lastUsed":{"$ref":"#/components/schemas/Date"},
            "idleSeconds":{"type":"integer"},"end":{"enum":["expired","idle","revoked","reused"]}}},
        "IssuedGrant":{"type":"object","required":["grant","token"],"properties":{
          "grant":{"$ref":"#/components/schemas/Grant"},"token":{"$ref":"#/components/schemas/GrantToken"}}},
        "GrantList":{"type":"object","required":["schema","grants"],"properties":{
          "schema":{"const":1},"grants":{"type":"array","items":{"$ref":"#/components/schemas/Grant"}}}},
        "RotationSpec":{"type":"object","properties":{
          "grace":{"type":"integer","minimum":0,"maximum":60,"description":"seconds"}}},
        "DelegationSpec":{"type":"object","required":["name","permissions"],"properties":{
          "name":{"type":"string"},"permissions":{"$ref":"#/components/schemas/Permissions"},
          "lifetime":{"type":"integer","description":"seconds"},"idle":{"type":"integer","description":"seconds"},
          "user":{"type":"integer"}}},
        "RevocationResult":{"type":"object","required":["ended"],"properties":{
          "ended":{"type":"array","items":{"type":"string"}}}},
        "AccessRequestSpec":{"type":"object","required":["name","permissions"],"properties":{
          "name":{"type":"string"},"permissions":{"$ref":"#/components/schemas/Permissions"},
          "isBearer":{"type":"boolean"},"lifetime":{"type":"integer","description":"seconds"}}},
        "AccessRequest":{"type":"object","required":["code","asker","name","permissions","expires"],"properties":{
          "code":{"type":"string","pattern":"^[A-Z]{4}-[A-Z]{4}$"},"asker":{"$ref":"#/components/schemas/Caller"},
          "name":{"type":"string"},"permissions":{"$ref":"#/components/schemas/Permissions"},
          "expires":{"$ref":"#/components/schemas/Date"}}},
        "AccessRequestCreated":{"type":"object","required":["request","handle","interval","approveWith"],"properties":{
          "request":{"$ref":"#/components/schemas/AccessRequest"},
          "handle":{"$ref":"#/components/schemas/InviteToken"},"interval":{"type":"integer"},
          "approveWith":{"type":"string"}}},
        "AccessRequestList":{"type":"object","required":["schema","requests"],"properties":{
          "schema":{"const":1},"requests":{"type":"array","items":{"$ref":"#/components/schemas/AccessRequest"}}}},
        "AccessRequestPoll":{"type":"object","required":["handle","client"],"properties":{
          "handle":{"$ref":"#/components/schemas/InviteToken"},"client":{"type":"string"},
          "name":{"type":"string"}}},
        "AccessRequestStatus":{"type":"object","required":["state"],"properties":{
          "state":{"enum":["waiting","denied","granted"]},"interval":{"type":"integer"},
          "granted":{"$ref":"#/components/schemas/GrantIssued"}}},
        "ApprovalSpec":{"type":"object","properties":{
          "address":{"type":"string","description":"one that the endpoint has now; absent: the preferred one"},
          "port":{"type":"integer","minimum":1,"maximum":65535,"description":"needed for a port below 1024"}}},
        "Approval":{"type":"object","required":["id","endpoint","by","at","app","host","addresses"],"properties":{
          "id":{"type":"string"},"endpoint":{"$ref":"#/components/schemas/EndpointID"},
          "by":{"$ref":"#/components/schemas/Caller"},"at":{"$ref":"#/components/schemas/Date"},
          "app":{"type":"string"},"host":{"type":"string"},"port":{"$ref":"#/components/schemas/Port"},
          "addresses":{"type":"array","items":{"type":"object","required":["address"],"properties":{
            "address":{"type":"string"},"interface":{"type":"string"}}}}}},
        "ApprovalList":{"type":"object","required":["schema","approvals"],"properties":{
          "schema":{"const":1},"approvals":{"type":"array","items":{"$ref":"#/components/schemas/Approval"}}}},
        "EndpointSecretSpec":{"type":"object","required":["secret"],"properties":{
          "secret":{"type":"string","maxLength":4096},"invite":{"$ref":"#/components/schemas/InviteToken"},
          "client":{"type":"string"},"name":{"type":"string"},
          "port":{"type":"integer","minimum":0,"maximum":65535}}},
        "AuditPage":{"type":"object","required":["schema","lines"],"properties":{
          "schema":{"const":1},"lines":{"type":"array","items":{"type":"string"}}}},
        "AuditVerification":{"type":"object","required":["lines"],"properties":{
          "lines":{"type":"integer"},"brokenLine":{"type":"integer"},"what":{"type":"string"}}}
        """#
}
