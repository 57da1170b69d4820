"""URLs for signing in and out, and for saved views."""

from django.urls import path

from tracker.pages.accounts import views

urlpatterns = [
    path("sign-in/", views.sign_in, name="sign-in"),
    path("sign-in/password/", views.by_password, name="sign-in-by-password"),
    path("sign-in/<str:token>/", views.by_link, name="sign-in-by-link"),
    path("no-mail/<str:token>/", views.confirm_opt_out, name="confirm-opt-out"),
    path("sign-out/", views.sign_out, name="sign-out"),
    path("views/", views.save_view, name="save-view"),
    path("views/<int:pk>/delete/", views.delete_view, name="delete-view"),
]
